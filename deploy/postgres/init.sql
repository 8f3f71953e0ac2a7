CREATE DATABASE mlflow_auth;
